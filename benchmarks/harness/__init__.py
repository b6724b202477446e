"""What all suites use: the engine and its worker, results and what is computed, printed and drawn of them."""
