COPY cells FROM 'benchmarks/leaderboard/cells.parquet' (FORMAT 'parquet', compression 'zstd');
COPY curves FROM 'benchmarks/leaderboard/curves.parquet' (FORMAT 'parquet', compression 'zstd');
COPY scores FROM 'benchmarks/leaderboard/scores.parquet' (FORMAT 'parquet', compression 'zstd');
