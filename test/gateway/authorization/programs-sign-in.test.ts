import { LANGUAGES } from '../../openai/clients/support/languages.ts';
import {
  startClaudeCode,
  startCodex,
  startFastMcp,
  startMcpGo,
  startMcpRemote,
  type StartProgram,
} from './support/programs.ts';
import { testPrograms } from './support/programs-sign-in.ts';

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

testPrograms({
  'mcp-remote': startMcpRemote,
  'Claude Code': startClaudeCode,
  Codex: startCodex,
  ...inLanguage('python', 'FastMCP', startFastMcp),
  ...inLanguage('go', 'mcp-go', startMcpGo),
});
