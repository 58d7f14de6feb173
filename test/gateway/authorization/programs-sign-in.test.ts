import { afterAll, beforeAll, expect, test } from 'vitest';
import { startScriptedModel, type ScriptedModel } from '../../mcp/clients/scripted-model.ts';
import { toolBlock } from '../../mcp/conformance/tool-block.ts';
import { LANGUAGES } from '../../openai/clients/support/languages.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { foldersOfMachine } from '../../support/named-programs.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { startDesk } from './support/desk.ts';
import { endGrant, grantsOf } from './support/grants.ts';
import {
  startClaudeCode,
  startCodex,
  startFastMcp,
  startInspector,
  startMcpGo,
  startMcpRemote,
  type StartProgram,
} from './support/programs.ts';

/*
 * Programs as they are at their registries, none with a key: they open the page in a browser, call a tool, refresh, and
 * are refused once the person takes the grant away. What each asks for in the end is answered with no.
 */

/** A program in a language that this machine may not have. */
function inLanguage(language: string, name: string, start: StartProgram): Readonly<Record<string, StartProgram>> {
  const { missing } = LANGUAGES[language]!();
  if (missing !== null) process.stderr.write(`  ${name} is left out: ${missing}\n`);
  return missing === null ? { [name]: start } : {};
}

const PROGRAMS: Readonly<Record<string, StartProgram>> = {
  'mcp-remote': startMcpRemote,
  'MCP Inspector': startInspector,
  'Claude Code': startClaudeCode,
  Codex: startCodex,
  ...inLanguage('python', 'FastMCP', startFastMcp),
  ...inLanguage('go', 'mcp-go', startMcpGo),
};

let fixture: McpFixture;
let model: ScriptedModel;
let spine: Spine;
/** By how much the clock of the gateway is ahead. Those of the programs are not. */
let ahead = 0;
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

const HOUR_MS = 60 * 60_000;
const ANSWER = 'This is a simple text response for testing.';

test.for(Object.entries(PROGRAMS))(
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
