"""What a program calls: paths and tables in, reports that show and save themselves out."""
