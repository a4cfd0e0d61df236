"""`view.interact`: controls for the arguments of a function, which is computed in the page or by the kernel."""
