"""Pages of sign-in for apps: consent, connected apps, a developer's apps, and help for developers."""
