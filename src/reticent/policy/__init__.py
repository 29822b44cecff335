"""Online: public state -> which sensor, or stop."""
