"""From one homework source to everything that is made of it: notebooks, public checks, releases."""
