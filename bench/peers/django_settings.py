"""Settings of a provider built on django-oauth-toolkit, on SQLite in WAL mode that syncs every commit.

The environment variable DATABASE is the path of the database, KEY the RSA key of ID tokens as PEM.
"""

import os
import secrets

ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = secrets.token_hex(32)
ROOT_URLCONF = "django_provider"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"]
# Adds Content-Length.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
USE_TZ = True
LOGGING_CONFIG = None
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["DATABASE"],
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
            "transaction_mode": "IMMEDIATE",
        },
    }
}
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_RSA_PRIVATE_KEY": os.environ["KEY"],
    "OAUTH2_VALIDATOR_CLASS": "django_provider.Validator",
    "OAUTH_DEVICE_VERIFICATION_URI": "https://provider.example/device",
    "SCOPES": {
        "openid": "OpenID Connect",
        "profile": "Profile",
        "email": "E-mail address",
        "read-repos": "Read repos",
    },
}
