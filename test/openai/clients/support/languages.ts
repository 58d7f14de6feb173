import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { findGo } from '../../../support/find-go.ts';
import { environmentOfMachine, foldersOfMachine } from '../../../support/named-programs.ts';

const PROGRAMS = resolve(import.meta.dirname, '../languages');
const CACHE = resolve(import.meta.dirname, '../../../../.cache');

/** A program in another language, built and ready to run. */
export interface Built {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** A language with programs beside this file's folder. */
interface Language {
  /** Why its programs cannot run on this machine; null if they can. */
  readonly missing: string | null;
  /**
   * Fetches what its programs need into `.cache`, by the package manager of the language, and builds them. Rejects with
   * what the package manager printed.
   */
  build(program: string): Promise<Built>;
}

async function run(file: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  try {
    return await promisify(execFile)(file, args, {
      env: environmentOfMachine(),
      maxBuffer: 64 * 1024 * 1024,
      ...options,
    });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

/** The file of a program of this machine; null if it has none. */
const found = (name: string): string | null =>
  foldersOfMachine()
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file)) ?? null;

const lacks = (names: readonly string[], how: string): string | null => {
  const absent = names.filter((name) => found(name) === null);
  return absent.length === 0 ? null : `there is no ${absent.join(' and no ')} here: ${how}`;
};

/** A folder in the cache for one state of the file that names the packages. */
const cached = (language: string, packages: string): string =>
  join(CACHE, `clients-${language}-${createHash('sha256').update(readFileSync(packages)).digest('hex').slice(0, 12)}`);

/** Debian has its module for environments in a package of its own. */
const IS_FIT = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))';

function python(): Language {
  // They need other versions of packages than the others do.
  const own: Readonly<Record<string, string>> = {
    'google_genai.py': 'requirements-google.txt',
    'fastmcp_oauth.py': 'requirements-fastmcp.txt',
  };
  const requirementsOf = (program: string) => join(PROGRAMS, 'python', own[program] ?? 'requirements.txt');
  const interpreter = found('python3');
  const isFit =
    interpreter !== null && spawnSync(interpreter, ['-c', IS_FIT], { env: environmentOfMachine() }).status === 0;
  return {
    missing: isFit ? null : 'there is no fit python3 here: install Python 3.11 or newer with its module venv',
    async build(program) {
      const requirements = requirementsOf(program);
      const folder = cached('python', requirements);
      if (!existsSync(folder)) {
        mkdirSync(CACHE, { recursive: true });
        const made = await mkdtemp(join(CACHE, 'clients-python-new-'));
        await run(interpreter!, ['-m', 'venv', '--copies', made]);
        const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
        await run(join(made, 'bin/python3'), pip);
        renameSync(made, folder);
      }
      return { file: join(folder, 'bin/python3'), args: [join(PROGRAMS, 'python', program)] };
    },
  };
}

function go(): Language {
  const program = findGo();
  return {
    missing: typeof program === 'string' ? program : null,
    // A folder for each program.
    async build(name) {
      if (typeof program === 'string') throw new Error(program);
      const source = join(PROGRAMS, name === 'go-openai' ? 'go' : name);
      const folder = cached('go', join(source, 'go.sum'));
      const env = {
        ...program.env,
        GOPATH: join(folder, 'path'),
        GOCACHE: join(folder, 'cache'),
        GOFLAGS: '-mod=readonly',
        CGO_ENABLED: '0',
      };
      const file = join(folder, 'client');
      await run(program.file, ['build', '-modcacherw', '-o', file, '.'], { cwd: source, env });
      return { file, args: [] };
    },
  };
}

function rust(): Language {
  const source = join(PROGRAMS, 'rust');
  return {
    missing: lacks(['cargo'], 'install Rust'),
    async build() {
      const folder = cached('rust', join(source, 'Cargo.lock'));
      const env = { ...environmentOfMachine(), CARGO_TARGET_DIR: folder };
      await run(found('cargo')!, ['build', '--quiet', '--locked'], { cwd: source, env });
      return { file: join(folder, 'debug/clients'), args: [] };
    },
  };
}

function java(): Language {
  const source = join(PROGRAMS, 'java');
  return {
    missing: lacks(['java', 'mvn'], 'install a JDK of 17 or newer, and Maven'),
    async build() {
      const folder = cached('java', join(source, 'pom.xml'));
      const args = ['--quiet', '--batch-mode', `-Dclients.target=${folder}`];
      const classpath = join(folder, 'classpath');
      await run(found('mvn')!, [...args, 'compile', 'dependency:build-classpath', `-Dmdep.outputFile=${classpath}`], {
        cwd: source,
      });
      const paths = [join(folder, 'classes'), readFileSync(classpath, 'utf8').trim()].join(':');
      return { file: found('java')!, args: ['-cp', paths, 'Chat'] };
    },
  };
}

export const LANGUAGES: Readonly<Record<string, () => Language>> = { python, go, rust, java };

/** Runs a program, and returns the JSON that it prints. Rejects with what it wrote if it fails. */
export async function said({ file, args, env }: Built, settings: Readonly<Record<string, string>>): Promise<unknown> {
  const { stdout } = await run(file, args, { env: { ...environmentOfMachine(), ...env, ...settings } });
  return JSON.parse(stdout);
}
