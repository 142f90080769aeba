"""Access: tokens with scopes, their secrets, and sessions of the admin UI."""
