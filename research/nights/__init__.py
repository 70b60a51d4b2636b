"""Simulated nights: deliveries from worlds that are known, and what viewfold makes of them."""
