"""What hidden suites run beside student code. It is put into the box with course_utils, and never ships to students."""
