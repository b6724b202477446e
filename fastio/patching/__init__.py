"""What a patch is, and how it is put in place, looked at and taken back."""
