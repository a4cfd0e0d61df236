"""Static pictures, drawn by matplotlib: heatmaps, charts, text and layouts, with their colours, fonts and formats."""
