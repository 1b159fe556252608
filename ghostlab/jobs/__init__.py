"""Jobs that outlive the page that started them."""
