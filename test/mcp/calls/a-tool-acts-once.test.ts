import { expect, test } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

const OK = '{"resultType":"complete","content":[]}';

/** Two providers of one service: the cheap one, which is asked first, and another. */
async function withTwo(first: string, run: (spine: Spine, backup: RawMcp) => Promise<void>): Promise<void> {
  const backup = await startRawMcp(() => OK);
  const spine = await startSpine({
    toml:
      toolToml({ name: 'acts', url: first, provider: 'Cheap', pricing: 'per_call = 0.000001' }) +
      toolToml({ name: 'acts', url: backup.url, provider: 'Dear', pricing: 'per_call = 0.009' }),
  });
  try {
    await run(spine, backup);
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await backup.close();
  }
}

test('a call that broke after it was sent is not made again elsewhere, and costs nothing', async () => {
  const broken = await startRawMcp(() => (response) => void response.destroy());
  await withTwo(broken.url, async (spine, backup) => {
    const before = (await spine.balance()).available;
    const reply = await callTool(spine, 'acts', 'pay');
    expect(reply.status).toBe(502);
    expect([broken.asked.length, backup.asked.length]).toEqual([1, 0]);
    expect((await spine.balance()).available).toBe(before);
  });
  await broken.close();
});

test('a call that could not be sent goes to the other provider', async () => {
  await withTwo('http://127.0.0.1:9/mcp', async (spine, backup) => {
    expect((await callTool(spine, 'acts', 'pay')).status).toBe(200);
    expect(backup.asked).toHaveLength(1);
  });
});
