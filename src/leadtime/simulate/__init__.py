"""A cluster in virtual time made of mechanics, offered to the loop as source and actuator; worlds and scenarios."""
