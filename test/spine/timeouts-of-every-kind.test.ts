import { expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { ENDPOINTS, type PeerDoor } from '../peers/routes.ts';
import { peerServices } from '../peers/services.ts';
import { startPeerProvider } from '../peers/peer-provider.ts';
import { UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// A service of each kind has a time of its own for the head of its reply, which a reload changes.

const LATE = 'head_timeout_ms = 300';
/** Without the option a call would wait for ten minutes. */
const toml = (line: string) =>
  `${UNHURRIED}[upstream]\ncooldown_ms = 1\n${peerServices(provider)
    .replaceAll('model = "peer"', `model = "peer"\n${line}`)
    .replaceAll(/^endpoint = .*$/gm, `$&\n${line}`)}`;
const provider = ofFile(startPeerProvider, (one) => one.close());
const spine = spineOfFile(() => ({ toml: toml('') }));

const OF_KINDS = (['model', 'tool', 'agent', 'image', 'video'] as const).map((kind): PeerDoor =>
  ENDPOINTS.find(({ primitive }) => primitive === kind)!,
);

async function reload(line: string): Promise<void> {
  spine.writeFile(toml(line));
  const reply = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect(reply.status, await reply.text()).toBe(200);
}

test.each(OF_KINDS)('a $primitive that is late has failed', async (door) => {
  const { account, key } = await spine.tenant(`late-${door.primitive}`, '1');
  await reload(LATE);
  const late = await door.call({ origin: spine.origin, key, text: `hang ${door.primitive}` });
  expect(late.kind).toBe('failed');
  await reload('');
  // At the operator's own provider a model was at work for an answer in one piece, so its input is paid.
  const { available, locked } = (await spine.app.ledger.balance(escrowOf(account)))!;
  expect(locked).toBe(0n);
  if (!['model', 'image'].includes(door.primitive)) expect(available).toBe(1_000_000n);
  const patient = await door.call({ origin: spine.origin, key, text: `slow ${door.primitive}` });
  expect(patient.kind).toBe('answered');
  expect(await spine.faults()).toEqual([]);
});
