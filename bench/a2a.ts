/** `node bench/a2a.ts`: the cost of a message to an agent in tollgate, compared with a passthrough. */
import { compare } from './compare.ts';
import { A2A_TARGETS, messageJobFor } from './route-targets.ts';

const PER_SECOND = 200;

await compare({
  help: `node bench/a2a.ts [--quick]

Measures SendMessage of A2A 1.0 through tollgate beside a passthrough, all on 127.0.0.1. Each message is a new one. The agent answers with a message,
or with a task that is completed. Rounds are interleaved, figures are medians.
  --quick   a quarter of the minute and a half; for orders of magnitude
Profile it with "node bench/profile.ts --target a2a-tollgate --load message" (or task).
`,
  targets: A2A_TARGETS,
  scenarios: [
    {
      title: 'answered with a message',
      job: (target, shape) => messageJobFor(target, 'message', shape),
      perSecond: PER_SECOND,
    },
    {
      title: 'answered with a completed task',
      job: (target, shape) => messageJobFor(target, 'task', shape),
      perSecond: PER_SECOND,
    },
  ],
});
