from hubgate.cli.main import main

main()
