import { test } from 'vitest';
import { useCallsWorld } from '../a2a/calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../a2a/calls/support/raw-served.ts';
const calls = useCallsWorld();
test('run gift by the fallback', async () => {
  const seen: any[] = [];
  const handler = (id: string) => ({ result, request }: any) => { seen.push(id); result(taskResult(`${id}-${crypto.randomUUID()}`, 'COMPLETED')); };
  const a = await serveRaw(calls.world, handler('n-a'), { name: 'nest/agent', provider: 'Modest', pricing: 'per_call = 0.001' });
  await serveRaw(calls.world, handler('n-b'), { name: 'nest/agent', provider: 'Greedy', pricing: 'per_call = 0.001\nnested_max = 5' });
  const talk = calls.talk(a.url);
  for (let i = 0; i < 10; i++) { const r = await talk.sent('work', { message: {} }); if (r.error) console.log(r.text); }
  console.log(JSON.stringify(seen));
  for (const o of calls.world.spine.app.catalog.offers('agent')) console.log(o.provider.name, o.agent, o.price.rates);
});
