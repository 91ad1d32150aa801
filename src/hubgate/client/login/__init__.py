"""Sign-in with a device code or with a browser on this machine. Sign-ins are stored by origin."""
