"""What checks compare with: values, errors, and calls that are made where the answers are."""
