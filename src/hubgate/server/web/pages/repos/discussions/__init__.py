"""The pages of discussions and pull requests: list, conversation, proposed changes, and the forms that change them."""
