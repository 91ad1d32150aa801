"""The routes of a provider built on django-oauth-toolkit, and the claims of its userinfo."""

from django.urls import include, path
from oauth2_provider.oauth2_validators import OAuth2Validator

urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]


class Validator(OAuth2Validator):
    def get_additional_claims(self):
        return {
            "name": lambda request: request.user.get_full_name(),
            "preferred_username": lambda request: request.user.username,
            "email": lambda request: request.user.email,
            "email_verified": lambda _: True,
        }
