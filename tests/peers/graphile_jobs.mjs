// Runs jobs that do nothing through graphile-worker, for tests/bench --only peers. Prints the jobs per second.
//
// usage: graphile_jobs.mjs <directory of node_modules> <database URL> <jobs> <producers> <slots>
import { setTimeout as sleep } from "node:timers/promises";
import { createRequire } from "node:module";

const [, , modules, connectionString, ...numbers] = process.argv;
const [jobs, producers, slots] = numbers.map(Number);
const { Logger, makeWorkerUtils, run, runMigrations } = createRequire(`${modules}/`)("graphile-worker");

const logger = new Logger(() => () => undefined);
await runMigrations({ connectionString, logger });
const utils = await makeWorkerUtils({ connectionString, logger, maxPoolSize: producers });
let ended = 0;
const nothing = async () => void ended++;
const options = { connectionString, logger, concurrency: slots, maxPoolSize: slots + 4, noHandleSignals: true, taskList: { nothing } };
const runner = await run(options);

const began = performance.now();
const share = Math.floor(jobs / producers);
const produce = async () => {
    for (let made = 0; made < share; made++) await utils.addJob("nothing", {});
};
await Promise.all(Array.from({ length: producers }, produce));
while (ended < share * producers) await sleep(5);
// The last ones have run; now until they are recorded as done, which deletes them.
const left = () => utils.withPgClient((client) => client.query("SELECT count(*)::int AS left FROM graphile_worker.jobs"));
while ((await left()).rows[0].left > 0) await sleep(5);
console.log((share * producers) / ((performance.now() - began) / 1000));
await runner.stop();
await utils.release();
