import { afterAll, beforeAll, expect, test } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../../mcp/clients/scripted-model.ts';
import { toolBlock } from '../../../mcp/conformance/tool-block.ts';
import { startMcpFixture, type McpFixture } from '../../../support/mcp-fixture.ts';
import { foldersOfMachine } from '../../../support/named-programs.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { startDesk } from './desk.ts';
import { endGrant, grantsOf } from './grants.ts';
import type { StartProgram } from './programs.ts';

let fixture: McpFixture;
let model: ScriptedModel;
let spine: Spine;
/** By how much the clock of the gateway is ahead. Those of the programs are not. */
let ahead = 0;
const HOUR_MS = 60 * 60_000;
const ANSWER = 'This is a simple text response for testing.';

/** Tests that programs sign in, call, refresh, and are refused in the end. One file calls it once. */
export function testPrograms(programs: Readonly<Record<string, StartProgram>>): void {
  beforeAll(async () => {
    [fixture, model] = await Promise.all([startMcpFixture(), startScriptedModel()]);
    spine = await startSpine({
      mode: 'development',
      // The documents of these programs are on the internet, where this machine may not look. They register instead.
      toml: `${UNHURRIED}\n[authorization]\nclient_documents = false\n${toolBlock('acme/tools', fixture.url)}`,
      now: () => Date.now() + ahead,
    });
  });
  afterAll(async () => {
    await spine.stop();
    await model.close();
    await fixture.close();
  });

  test.for(Object.entries(programs))(
    '%s signs in, calls, refreshes, and is refused in the end',
    { timeout: 600_000 },
    async ([, start]) => {
      const desk = await startDesk(spine.origin, spine.key, foldersOfMachine().join(':'));
      const aheadS = () => ahead / 1_000;
      const program = await start({ desk, url: `${spine.origin}/mcp/acme/tools`, model, aheadS });
      try {
        expect(await program.call()).toContain(ANSWER);
        expect(desk.opened).toHaveLength(1);
        const grant = (await grantsOf(spine)).at(-1)!;

        ahead += HOUR_MS;
        expect(await program.call()).toContain(ANSWER);
        expect(desk.opened).toHaveLength(1);
        await spine.quiet();
        expect((await grantsOf(spine)).at(-1)).toMatchObject({ hash: grant.hash, usage: 0.002 });
        const { available } = await spine.balance();

        await endGrant(spine, grant);
        desk.says = 'no';
        // A program that asks the person again may wait for another answer than no.
        const refused = await Promise.race([program.call().catch(String), desk.answered().then(() => 'refused')]);
        expect(refused).not.toContain(ANSWER);
        expect((await spine.balance()).available).toBe(available);
      } finally {
        await program.close();
        await desk.close();
      }
      expect(await spine.faults()).toEqual([]);
    },
  );
}
