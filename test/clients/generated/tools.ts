import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

/* Generators of clients in other languages, at fixed versions, each from the registry of its language. */

const CACHE = resolve(import.meta.dirname, '../../../.cache');
const PYTHON_CLIENT = '0.29.1';
const OPENAPI_GENERATOR = '7.25.0';
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const BUILD_MS = 900_000;

/** Runs a program and returns what it prints. Throws what it wrote if it fails. */
export function run(file: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): string {
  const done = spawnSync(file, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: BUILD_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (done.status !== 0)
    throw new Error(`${file} ${args.join(' ')}: ${done.stderr.slice(-3000)}${done.stdout.slice(-3000)}`, {
      cause: done.error,
    });
  return done.stdout;
}

/** Why these programs are not on this machine; null if they all run. */
export function lacking(...programs: readonly (readonly [file: string, version: string])[]): string | null {
  const missing = programs.filter(([file, version]) => spawnSync(file, [version]).status !== 0);
  return missing.length === 0 ? null : `no ${missing.map(([file]) => file).join(' and no ')} on this machine`;
}

/** Fills a folder of the cache once. A folder that is there is complete. */
export function once(name: string, fill: (folder: string) => void): string {
  const folder = join(CACHE, name);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    fill(work);
    if (!existsSync(folder)) renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}

/** Installs packages of Python beside each other; returns the folder that has to be in PYTHONPATH. */
export const pythonPackages = (name: string, ...packages: readonly string[]): string =>
  once(`python-${name}`, (folder) =>
    run('python3', ['-m', 'pip', 'install', '--quiet', '--target', folder, ...packages], folder),
  );

export const openApiPythonClient = (): string =>
  pythonPackages(`openapi-python-client-${PYTHON_CLIENT}`, `openapi-python-client==${PYTHON_CLIENT}`);

/** The program of openapi-generator, as a file for `java -jar`. Maven fetches it. */
export function openApiGenerator(): string {
  const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
  const folder = once(`openapi-generator-${OPENAPI_GENERATOR}`, (work) => {
    const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
    run('mvn', ['-q', copy, `-Dartifact=${artifact}`, `-DoutputDirectory=${work}`], work);
  });
  return join(folder, `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`);
}

/** The program oapi-codegen, which Go builds. */
export const oapiCodegen = (): string =>
  join(
    once(
      `oapi-codegen-${OAPI_CODEGEN.split('@')[1]}`,
      (GOBIN) => void run('go', ['install', OAPI_CODEGEN], GOBIN, { GOBIN }),
    ),
    'oapi-codegen',
  );
