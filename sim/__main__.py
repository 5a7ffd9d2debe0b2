"""`python -m sim` is the iotwin command."""

from sim.cli.main import main

if __name__ == "__main__":
    main()
