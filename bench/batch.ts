/** `node bench/batch.ts`: the cost of a JSON-RPC batch of chat completions in tollgate, compared with a passthrough. */
import { compare } from './compare.ts';
import { BATCH, BATCH_TARGETS, batchJobFor } from './route-targets.ts';
import { OPEN_PER_SECOND } from './plan.ts';

await compare({
  help: `node bench/batch.ts [--quick]

Measures a JSON-RPC batch of ${BATCH} chat completions through tollgate beside a passthrough that parses the batch and sends each entry to the
upstream, all on 127.0.0.1. A call is a whole batch. Rounds are interleaved, figures are medians.
  --quick   a quarter of the minute; for orders of magnitude
Profile it with "node bench/profile.ts --target batch-tollgate --load batch".
`,
  targets: BATCH_TARGETS,
  scenarios: [{ title: `a batch of ${BATCH}`, job: batchJobFor, perSecond: OPEN_PER_SECOND / BATCH }],
});
