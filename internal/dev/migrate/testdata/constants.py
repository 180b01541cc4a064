DOMAIN = "db." + "example.com"
PLURAL = "innodb" "clusters"
