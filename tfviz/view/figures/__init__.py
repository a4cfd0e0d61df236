"""Static pictures, drawn by matplotlib, with their colours and fonts."""
