import { expect, onTestFinished, test } from 'vitest';
import { dialIn, READY } from '../../support/dial-in.ts';
import { startGateway } from '../../support/gateway.ts';
import { until } from '../../support/tunnel-spine.ts';
import { DOMAIN } from '../../support/wallets.ts';
import { toolToml } from '../calls/modern-post.ts';
import { beginTask, callDeclared, getTask } from './task-client.ts';
import { DONE, startTaskServer } from './task-server.ts';

type Begun = Awaited<ReturnType<typeof beginTask>>;
/** What becomes of a task while the gateway is dead: undefined goes on, null is lost. */
type Fate = typeof DONE | { readonly status: string } | null | undefined;

// The gateway's process is killed while tasks go on, at a server with an address and at one behind a tunnel, and
// starts again on its database.

test('what ended while the gateway was dead is settled once, and what goes on keeps its lock', async () => {
  const server = await startTaskServer();
  onTestFinished(() => server.close());
  const gateway = await startGateway({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml: `[tasks]\nlook_ms_max = 1000\n${toolToml({ name: 'direct/slow', url: server.url })}`,
  });
  onTestFinished(() => gateway.stop());
  const { account, key } = await gateway.openAccount('caller', 10);
  const door = { origin: gateway.baseUrl, key };
  const proxy = await dialIn({
    router: gateway.baseUrl,
    services: toolToml({ name: 'tunnel/slow', url: server.url, provider: 'Tunnel' }),
  });
  onTestFinished(() => proxy.kill());
  const money = async () =>
    ((await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as { data: Record<string, number> }).data;
  const stateOf = async (call: string) => {
    const response = await fetch(`${gateway.baseUrl}/api/v1/generation?id=${call}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return (
      (await response.json()) as { data: { state: string; cost_micro_usdc: number; finish_reason: string | null } }
    ).data;
  };

  const begun: (Begun & {
    readonly service: string;
    readonly fate: Fate;
    readonly meta: Record<string, string>;
    readonly own: string;
  })[] = [];
  for (const service of ['direct/slow', 'tunnel/slow'])
    for (const fate of [DONE, { status: 'failed' }, null, undefined]) {
      const meta = { 'tollgate/idempotency-key': `${service} ${begun.length}` };
      const task = await beginTask(door, service, {}, { meta });
      begun.push({ ...task, service, fate, meta, own: server.ids.at(-1)! });
    }
  expect(await money()).toMatchObject({ locked_micro_usdc: 8_000, balance_micro_usdc: 9_992_000 });

  await gateway.kill9();
  for (const { own, fate } of begun) if (fate !== undefined) server.says(own, fate);
  await gateway.restart();
  await proxy.logged(READY, 2);

  // Each but one of either service has ended: done, failed, lost.
  await until(async () => (await money())['locked_micro_usdc'] === 2_000, 30_000);
  expect(await money()).toMatchObject({ balance_micro_usdc: 9_996_000 });
  for (const { id, call, service, fate, meta, created } of begun) {
    expect(await stateOf(call)).toMatchObject(
      fate === undefined ? { state: 'held' } : { state: 'settled', cost_micro_usdc: fate === DONE ? 1_000 : 0 },
    );
    const { message } = await getTask(door, service, id);
    if (fate === null) expect(message.error?.code).toBe(-32_602);
    else expect(message.result).toMatchObject({ taskId: id, status: fate?.status ?? 'working' });
    expect((await callDeclared(door, service, {}, { meta })).message.result).toEqual(created);
  }
  for (const { own, fate } of begun) if (fate === undefined) server.says(own, DONE);
  await until(async () => (await money())['locked_micro_usdc'] === 0, 30_000);
  expect(await money()).toMatchObject({ balance_micro_usdc: 9_996_000 });
  const late = await beginTask(door, 'tunnel/slow');
  await proxy.close();
  const away = await getTask(door, 'tunnel/slow', late.id);
  expect([away.status, away.message.error?.code]).toEqual([503, -32_017]);
  expect(await stateOf(late.call)).toMatchObject({ state: 'held' });
  const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
});
