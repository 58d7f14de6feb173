import { test, onTestFinished } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { createTalk } from '../contract/talk.ts';
import { startQuickAgent } from './support/quick-agent.ts';
test('x', async () => {
  const agent = await startQuickAgent();
  const spine = await startSpine({ toml: `${UNHURRIED}${agentBlock({ name: 'q/a', endpoint: agent.url })}` });
  onTestFinished(async () => { await spine.stop(); await agent.close(); });
  const talk = createTalk({ url: `${spine.origin}/a2a/q/a`, headers: { authorization: `Bearer ${spine.key}` } }, '1.0', 'JSONRPC');
  for (const t of ['done', 'slow 20', 'fail 20', 'ask']) {
    const r = await talk.sent(t);
    console.log(t, r.text);
    const s = await talk.stream(t);
    console.log(await s.rest().catch(String), s.wire.map((w) => w.data));
  }
  // resend of a stream that ended pending
  const message = { messageId: 'same-1' };
  const s = await talk.stream('ask', { message });
  console.log('first', (await s.rest()).length);
  console.log('again', await talk.stream('ask', { message }).then(async (x) => (await x.rest()).map((e) => JSON.stringify(e))).catch(String));
  console.log('again send', (await talk.sent('ask', { message })).text);
});
