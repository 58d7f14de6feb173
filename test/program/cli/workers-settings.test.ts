import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { workerCount } from '../../../src/program/cli/gateway/workers.ts';
import { clusterOfWorker } from '../../../src/program/cli/gateway/worker.ts';

describe('--workers', () => {
  it('takes a number, or one for each core', () => {
    expect([workerCount('1'), workerCount('256'), workerCount('auto')]).toEqual([1, 256, availableParallelism()]);
  });

  it.each(['0', '-1', 'two', '1.5', '257', '', '1e2', ' 2'])('refuses "%s"', (text) => {
    expect(() => workerCount(text)).toThrow('--workers takes a number from 1 to 256');
  });
});

describe('the listener of a worker for other gateways', () => {
  const alone = { url: null, host: '0.0.0.0', port: 8403, secret: null };

  it('is on loopback where no other machine is to reach it, on a free port of its own', () => {
    expect(clusterOfWorker(alone, 1)).toEqual({ url: 'https://127.0.0.1:0', host: '127.0.0.1', port: 0, secret: null });
  });

  it('is on the configured port and those that follow where other machines reach it', () => {
    const reached = { ...alone, url: 'https://gateway-1.internal:9000' };
    expect([0, 1, 2].map((slot) => clusterOfWorker(reached, slot))).toEqual([
      { ...alone, url: 'https://gateway-1.internal:9000' },
      { ...alone, url: 'https://gateway-1.internal:9001', port: 8404 },
      { ...alone, url: 'https://gateway-1.internal:9002', port: 8405 },
    ]);
    expect(clusterOfWorker({ ...alone, url: 'https://gateway-1.internal' }, 1).url).toBe(
      'https://gateway-1.internal:444',
    );
  });
});
