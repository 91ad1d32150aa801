"""Contents of files, up and down. No file is ever held in memory whole."""
