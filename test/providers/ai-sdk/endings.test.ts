import { expect, test } from 'vitest';
import { type CallEnding, ENDINGS } from '../../../src/gateway/call/endings.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ask, records } from '../../spine/endings/ends-of-calls.ts';
import { ALL_KINDS } from '../../spine/endings/streamed-kinds.ts';
import { REPLY_BYTES_MAX, REPORTED, startVendor } from '../../spine/endings/vendor.ts';

/* A package of the AI SDK asks a vendor as the operator's own provider does, so its calls end by the same rows. */

const CHAT = ['chat', 'chatstream'].map((name) => ALL_KINDS.find((kind) => kind.name === name)!);
const SCRIPTS: readonly (readonly [script: string, row: CallEnding])[] = [
  ['complete', 'complete'],
  ['left', 'left'],
  ['refused', 'refused'],
  ['failed', 'failed'],
  ['malformed', 'failed'],
  ['lost', 'failed'],
];
const CASES = CHAT.flatMap((kind) =>
  [...SCRIPTS, ...(kind.name === 'chat' ? ([['hung', 'late']] as const) : ([['hung', 'failed']] as const))].flatMap(
    ([script, row]) =>
      [true, false].map((reported) => ({
        kind,
        script,
        row,
        reported,
        id: `${kind.name}${script}${reported ? 1 : 0}`,
      })),
  ),
);

test('every row that a call of a package can have', async () => {
  const vendor = await startVendor();
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nattempts_max = 1\nhead_timeout_ms = 6000\nreply_bytes_max = ${REPLY_BYTES_MAX}\n[billing]\ndrain_ms = 700\n
[[models]]
name = "package/chat"
provider_name = "Package"
context_length = 100000
max_output_tokens = 4096
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "m"
sdk = "@ai-sdk/openai-compatible"
sdk_settings = { name = "vendor", baseURL = "${vendor.url}", includeUsage = true }
`,
  );
  // The process of the package begins with its first call.
  await spine.post('/chat/completions', CHAT[0]!.ask('package/chat', '!k:chat !e:complete !u:1 !n:first').body);
  for (let at = 0; at < CASES.length; at += 7)
    await Promise.all(CASES.slice(at, at + 7).map((one) => ask({ spine, vendor, ...one, model: 'package/chat' })));
  expect(await spine.faults()).toEqual([]);
  const found = await records(spine);
  const wrong = CASES.flatMap(({ id, row, script, reported, kind }) => {
    const { cost_micro_usdc: cost = 0, estimated = false } = found.get(id) ?? {};
    // A vendor that reports after its client has left has given a whole answer.
    const isReported = reported && script !== 'hung';
    const charge = ENDINGS[row].own[isReported ? 'reported' : 'unreported'];
    const isRight =
      charge === 'usage' ? cost === kind.worth(REPORTED) : charge === 'input' ? cost > 0 && estimated : cost === 0;
    return isRight ? [] : [`${id} costs ${cost}, not ${charge}`];
  });
  expect(wrong).toEqual([]);
});
