"""What weighting or resampling does: class weights, draws of rows, rows made up between others."""
