import { expect, test } from 'vitest';
import { startVideoProvider, videoBlock, type Job, type Queued } from '../../media/support/video-provider.ts';
import { tinyMp4 } from '../../media/support/tiny-mp4.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { records } from './ends-of-calls.ts';

/* How videos end, at the operator's provider and at one that dials in, and who pays what then. */

const FILE_BYTES_MAX = 1024 * 1024;
const HOUR_MS = 3_600_000;
/** Four seconds at 0.1 USD, and 0.05 for the video. */
const PRICE = 450_000;

interface Row {
  readonly job: Partial<Job>;
  /** What happens once the job has begun. */
  readonly next?: 'cancel' | 'expire';
  /** The provider does not cancel it. */
  readonly stays?: true;
  readonly status: string;
  readonly own: number;
  readonly far: number;
}

const ROWS: Readonly<Record<string, Row>> = {
  complete: { job: {}, status: 'completed', own: PRICE, far: PRICE },
  failed: { job: { status: 'failed', error: { code: 'x', message: 'no' } }, status: 'failed', own: 0, far: 0 },
  malformed: { job: { status: 'so-so' }, next: 'expire', status: 'failed', own: 0, far: 0 },
  cancelled: { job: { status: 'in_progress' }, next: 'cancel', status: 'failed', own: 0, far: 0 },
  uncancelled: {
    job: { status: 'in_progress' },
    next: 'cancel',
    stays: true,
    status: 'completed',
    own: PRICE,
    far: PRICE,
  },
  late: { job: { status: 'in_progress' }, next: 'expire', status: 'failed', own: 0, far: 0 },
  silent: { job: { hangs: true }, next: 'expire', status: 'failed', own: 0, far: 0 },
  toolarge: { job: { file: tinyMp4(4, FILE_BYTES_MAX) }, status: 'failed', own: PRICE, far: 0 },
};

test.each(Object.entries(ROWS))('%s', async (name, { job, next, stays, status, ...costs }) => {
  let passed = 0;
  const provider = await startVideoProvider();
  try {
    const block = (side: string) => videoBlock({ name: `${side}/film`, provider: side, url: provider.url });
    const { spine, dialIn } = await startTunnelSpine(
      `[billing]\nsweep_ms = 50\n[tasks]\nlook_ms_max = 1000\n[media]\nfree_bytes_min = 0\nfile_bytes_max = ${FILE_BYTES_MAX}\nvideo_ttl_ms = ${HOUR_MS}\n${block('own')}`,
      { now: () => Date.now() + passed, elapsed: () => performance.now() },
    );
    await dialIn({ services: block('far') });
    provider.begin(() => job);
    provider.cancels = stays !== true;
    const begun = await Promise.all(
      (['own', 'far'] as const).map(async (side) => {
        const asked = { model: `${side}/film`, prompt: 'A tollgate', duration: '4s' };
        const id = `${name}${side}`;
        const { id: task } = (await (await spine.post('/video/queue', asked, { 'x-request-id': id })).json()) as Queued;
        return { side, id, task };
      }),
    );
    const isCancelled = next === 'cancel' && !stays;
    if (next === 'cancel')
      for (const { task } of begun)
        expect((await spine.post('/video/cancel', { task_id: task })).status).toBe(isCancelled ? 200 : 422);
    if (stays) for (const each of provider.jobs.values()) each.status = 'completed';
    if (next === 'expire') passed += 2 * HOUR_MS;
    const stateOf = async (task: string) => {
      const shown = await spine.post('/video/retrieve', { task_id: task });
      if (shown.headers.get('content-type') === 'video/mp4') return 'completed';
      return ((await shown.json()) as { status: string }).status;
    };
    for (const { task } of begun) await expect.poll(() => stateOf(task), { timeout: 60_000 }).toBe(status);
    await spine.quiet();
    const found = await records(spine);
    expect(begun.map(({ id }) => found.get(id)?.cost_micro_usdc ?? 0)).toEqual([costs.own, costs.far]);
    expect(await spine.faults()).toEqual([]);
  } finally {
    await provider.close();
  }
});
