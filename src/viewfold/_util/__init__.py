"""What every room uses: errors, optional imports, types, files that are replaced as a whole."""
