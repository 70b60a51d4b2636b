CREATE TABLE cells(cell BIGINT PRIMARY KEY, experiment VARCHAR, dataset VARCHAR, "method" VARCHAR, ratio DOUBLE, draw INTEGER, setting VARCHAR, status VARCHAR, cpu_seconds DOUBLE, wall_seconds DOUBLE, peak_bytes BIGINT, n_samples BIGINT, n_clusters INTEGER, seed BIGINT, threads INTEGER, "load" DOUBLE, versions VARCHAR, finished TIMESTAMP);
CREATE TABLE curves(cell BIGINT, "view" INTEGER, iteration INTEGER, objective DOUBLE);
CREATE TABLE scores(cell BIGINT, metric VARCHAR, run INTEGER, "value" DOUBLE);

