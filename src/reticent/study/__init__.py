"""Studies: a grid of cells, each trained, evaluated and saved on its own, so that a long run can stop and go on."""
