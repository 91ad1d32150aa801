"""Pages of sign-in for apps: consent, connected apps, the apps one builds, and what helps their developers."""
