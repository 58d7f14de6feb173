import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ServiceConfig } from '#config';
import { atThisLoad } from '../../support/at-this-load.ts';
import { running } from '../../support/process-tree.ts';
import { modelAt } from '../../support/provider-proxy.ts';
import { callOf, PATIENT, stdioTool } from './stdio-tool.ts';

const tool = stdioTool({ shared: true });

describe('stopping', () => {
  const pid = (word: string) =>
    Number(
      tool
        .journalled()
        .find((line) => line.startsWith(`${word} `))!
        .split(' ')[1],
    );
  /** Resolves when the process has ended. */
  const gone = async (of: number) => {
    while (running([of]).length > 0) await pause(20);
    return true;
  };

  it('ends the process by the end of its input, after its last call', async () => {
    await tool.start([], {}, {}, PATIENT);
    await tool.post(callOf('echo'));
    expect(await tool.running.proxy.close()).toBe(0);
    expect(tool.journalled()).toContain('end of input');
    expect(await gone(pid('pid'))).toBe(true);
  });

  it('ends what a process started and left behind', async () => {
    await tool.start(['stop=careless'], {}, {}, PATIENT);
    await tool.post(callOf('echo'));
    expect(await tool.running.proxy.close()).toBe(0);
    expect(tool.journalled()).not.toContain('SIGTERM');
    expect([await gone(pid('pid')), await gone(pid('child'))]).toEqual([true, true]);
  });

  it('ends one that does not want to, and what it started, by force', async () => {
    await tool.start(['stop=stubborn'], {}, {}, { termMs: atThisLoad(200), killMs: atThisLoad(1_000) });
    await tool.post(callOf('echo'));
    expect(await tool.running.proxy.close()).toBe(0);
    expect(tool.journalled()).toContain('end of input');
    expect(tool.journalled()).toContain('SIGTERM');
    expect([await gone(pid('pid')), await gone(pid('child'))]).toEqual([true, true]);
  });

  it('goes on through a reload that changes its price, and ends when the file has it no more', async () => {
    await tool.start([], {}, {}, PATIENT);
    await tool.post(callOf('echo'));
    const [service] = tool.running.proxy.services();
    const priced = { ...service!, service: { ...service!.service, rates: { call: 2_000_000_000n } } } as ServiceConfig;
    const registered = async (services: readonly ServiceConfig[]) => {
      const done = tool.running.proxy.reload(services);
      await tool.end.heard();
      tool.end.say({ type: 'registered', revision: 2, services: services.map((one) => one.service.name) });
      expect(await done).toEqual({ kind: 'registered', raised: [] });
    };
    await registered([priced]);
    expect((await tool.post(callOf('echo'))).status).toBe(200);
    expect(tool.journalled().filter((line) => line.startsWith('pid '))).toHaveLength(1);
    await registered([modelAt('m', 'http://127.0.0.1:9/v1')]);
    expect(await gone(pid('pid'))).toBe(true);
    expect(tool.journalled()).toContain('end of input');
    expect((await tool.post(callOf('echo'))).headers['x-tollgate-failure']).toBe('unknown_service');
  });
});
