"""The learners that come with autoheur."""
