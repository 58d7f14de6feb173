import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const CACHE = resolve(import.meta.dirname, '../../.cache/npm');

/**
 * Programs and SDKs that only the deep run needs, as npm packages. They are too large for everybody's `npm test`. The
 * packages after the first one are used together with it.
 */
const PACKAGES = {
  'claude-code': ['@anthropic-ai/claude-code@2.1.329'],
  cline: ['cline@3.0.65'],
  cohere: ['cohere-ai@8.1.0'],
  'gemini-cli': ['@google/gemini-cli@0.61.0'],
  codex: ['@openai/codex@0.169.0'],
  langchain: ['@langchain/openai@1.6.0', '@langchain/core@1.2.13'],
  librechat: ['librechat-data-provider@0.8.524'],
  'mcp-remote': ['mcp-remote@0.15.1'],
  mcporter: ['mcporter@0.12.3'],
  opencode: ['opencode-ai@1.18.33'],
  'openapi-typescript': ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3'],
  redocly: ['@redocly/cli@2.77.0'],
  spectral: ['@stoplight/spectral-cli@6.16.3'],
  'openai-agents': ['@openai/agents@0.20.0', 'openai@7.55.0', 'zod@4.6.7'],
} as const;

export type Stranger = keyof typeof PACKAGES;

/** The version of each package. */
export const VERSIONS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(PACKAGES)
    .flat()
    .map((each) => [each.slice(0, each.lastIndexOf('@')), each.slice(each.lastIndexOf('@') + 1)]),
);

/**
 * Returns the folder whose `node_modules` contains this program. If it doesn't exist yet, npm installs the program
 * there from its configured registry. Nothing else on the machine changes, and no install script runs. Several
 * processes may do this at once, and the first one to finish wins. Throws npm's error with advice.
 */
export function installStranger(name: Stranger): string {
  const packages = PACKAGES[name];
  const folder = join(CACHE, packages.map((each) => each.replace(/^@/, '').replaceAll('/', '-')).join('+'));
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    const options = ['--prefix', work, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', ...options, ...packages], {
      encoding: 'utf8',
      timeout: 300_000,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    renameSync(work, folder);
  } catch (error) {
    if (!existsSync(folder)) {
      const said = ((error as { stderr?: string }).stderr ?? (error as Error).message).trim().slice(-2000);
      throw new Error(`${packages[0]} cannot be installed from npm, which the deep run does once: ${said}`, {
        cause: error,
      });
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}
