import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Agent, AgentOptions } from '../../support/a2a-agent/index.ts';
import type { Bench } from './bench.ts';
import { CHECKS } from './checks/index.ts';
import { REQUIREMENTS, type Requirement } from './manifest.ts';
import type { Binding, Version } from './shapes.ts';
import { createTalk, type Place } from './client-calls.ts';
import { startWebhook } from './webhook.ts';

/** One agent as a client meets it. */
export interface OpenedAgent extends Place {
  readonly agent: Agent;
  /** Headers of another account, where there are accounts. */
  readonly stranger?: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface Target {
  readonly name: string;
  /** What the client speaks. */
  readonly version: Version;
  readonly binding: Binding;
  /** Somebody stands before the agent: there are accounts. */
  readonly gateway?: boolean;
  /** Starts an agent and makes it reachable. The suite calls it once for each kind that it needs. */
  open(options: AgentOptions): Promise<OpenedAgent>;
  /** Requirements that are known not to hold, with the reason. Their tests fail when they hold. */
  readonly deviates?: Readonly<Record<string, string>>;
  /** Called when all is closed. */
  close?(): Promise<void>;
}

const applies = ({ section, binding, gateway }: Requirement, target: Target) =>
  section[target.version] !== undefined &&
  (binding === undefined || binding === target.binding) &&
  (gateway !== true || target.gateway === true);

/** Tests one target against every requirement that concerns it; each test names its section. */
export function contractSuite(target: Target): void {
  describe(`${target.name}: ${target.version} over ${target.binding}`, () => {
    const deviations = target.deviates ?? {};
    const opened = new Map<string, Promise<Bench>>();
    const ends: (() => Promise<void>)[] = [];
    const benchOf = (options: AgentOptions): Promise<Bench> => {
      const key = JSON.stringify(options);
      const there = opened.get(key) ?? open(options);
      opened.set(key, there);
      return there;
    };
    const open = async (options: AgentOptions): Promise<Bench> => {
      const { agent, stranger, close, url, headers } = await target.open(options);
      ends.push(close);
      const talkAs = (as: Readonly<Record<string, string>>) =>
        createTalk({ url, headers: as }, target.version, target.binding);
      return {
        talk: talkAs(headers),
        agent,
        other: benchOf,
        async webhook() {
          const hook = await startWebhook();
          ends.push(() => hook.close());
          return hook;
        },
        ...(stranger === undefined ? {} : { stranger: talkAs(stranger) }),
      };
    };

    beforeAll(() => benchOf({}));
    afterAll(async () => {
      await Promise.allSettled(ends.map((end) => end()));
      await target.close?.();
    });

    for (const requirement of REQUIREMENTS.filter((one) => applies(one, target))) {
      const { id, level, text, file, section } = requirement;
      const reason = deviations[id];
      const check = reason === undefined ? test : test.fails;
      check(
        `${id} (${level}, §${section[target.version]}) ${text}${reason === undefined ? '' : ` — does not hold: ${reason}`}`,
        async ({ task }) => {
          // scripts/test.mjs counts it apart from tests that pass.
          if (reason !== undefined) Object.assign(task.meta, { isKnownFailure: true });
          await CHECKS[file]![id]!(await benchOf({}));
        },
      );
    }

    test('every known deviation is one of a requirement that applies', () => {
      const ids = new Set(REQUIREMENTS.filter((one) => applies(one, target)).map(({ id }) => id));
      expect(Object.keys(deviations).filter((id) => !ids.has(id))).toEqual([]);
    });
  });
}
