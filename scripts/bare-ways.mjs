// The ways of docs/run/install.md on a bare machine: each is started until it answers, three times, and weighed. The
// release is built here, from the checkout.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const ROUNDS = 3;
const LOOK_MS = 20;
const LIMIT_MS = 300_000;
const FOLDER = 'ways';
/** In PATH no folder has a Node. */
const NO_NODE = '/usr/bin:/bin';
/** Node 26 needs it, and minbase has not. A checkout downloads Node 24 instead; an executable brings it. */
const LIBRARY = 'libatomic1';
const NODE_24 = '/opt/node-24/bin';
const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

/** Resolves with null, or with what went wrong. `say` gets a table. */
export async function runWays({ checkout, machine, home, log, say, signal, start, execute, freePort }) {
  const place = join(machine, home, FOLDER);
  mkdirSync(place);
  const release = join(place, 'release');
  const build = ['scripts/release/release.ts', '--dirty', '--out', release];
  const platform = `${process.platform}-${process.arch}`;
  const node = join(checkout, 'node_modules/.bin/node');
  await execute(node, [join(checkout, build[0]), ...build.slice(1), '--platforms', platform], { log, signal });
  const fileOf = (name) => readdirSync(release).find((file) => name.test(file));
  const [gateway, proxy] = [fileOf(/^tollgate-\d.*\.tgz$/), fileOf(/^tollgate-provide-\d.*\.tgz$/)];
  const [program, proxyProgram] = [new RegExp(`^tollgate-\\d.*-${platform}$`), /^tollgate-provide-\d.*-\w+-\w+$/].map(
    fileOf,
  );
  await installNode24({ checkout, machine, place, log, signal, execute });
  // The owner of the home owns what is made in it.
  await execute('chown', ['-R', '--reference', join(machine, home), place], { log, signal });

  /** Starts `command`, and gives the seconds until the demo's model answers, and what is then on the disk. */
  async function timed({ command, fresh, weigh, env = {}, run = start }) {
    for (const path of fresh) rmSync(join(machine, path), { recursive: true, force: true });
    const port = await freePort();
    writeFileSync(log, '');
    const began = performance.now();
    const child = run(command, { folder: FOLDER, env: { PORT: String(port), ...env } });
    try {
      const key = await written(child, /^export KEY=(\S+)/m);
      await call(`http://127.0.0.1:${port}`, key, 'demo/chat');
      const seconds = (performance.now() - began) / 1000;
      return { seconds, mb: weigh.reduce((sum, path) => sum + megabytes(join(machine, path)), 0) };
    } finally {
      await stopped(child);
    }
  }

  async function written(child, pattern) {
    const began = performance.now();
    for (;;) {
      const found = pattern.exec(readFileSync(log, 'utf8'));
      if (found !== null) return found[1];
      if (child.exitCode !== null || performance.now() - began > LIMIT_MS)
        throw new Error(
          `it does not get ready: ${readFileSync(log, 'utf8').trimEnd().split('\n').slice(-3).join(' ')}`,
        );
      await pause(LOOK_MS, undefined, { signal });
    }
  }

  /** The proxy, from its start until a call through a gateway is answered by it. */
  async function timedProxy({ command, fresh, weigh, env }) {
    const port = await freePort();
    // The wallet of each round is another provider of the same name.
    rmSync(join(machine, home, 'data-of-router'), { recursive: true, force: true });
    writeFileSync(log, '');
    const router = start(`./release/${program} start`, {
      folder: FOLDER,
      env: {
        PATH: NO_NODE,
        PORT: String(port),
        TOLLGATE_DATA: `${home}/data-of-router`,
        TOLLGATE_UNPACK: `${home}/unpacked`,
      },
    });
    const upstream = createServer((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(COMPLETION));
      });
    });
    await new Promise((done) => upstream.listen(0, '127.0.0.1', done));
    let child;
    try {
      const key = await written(router, /^export KEY=(\S+)/m);
      for (const path of fresh) rmSync(join(machine, path), { recursive: true, force: true });
      writeFileSync(
        join(place, 'provider.toml'),
        `router = { url = "http://127.0.0.1:${port}", siwx = { chain_id = "solana:mainnet", keypair_file = "wallet.json" } }
[[models]]
name = "acme/small"
pricing = { prompt = 1, completion = 1 }
params = { model = "m", api_base = "http://127.0.0.1:${upstream.address().port}" }
`,
      );
      const began = performance.now();
      child = start(
        `rm -f wallet.json && ${command('keygen --chain solana --out wallet.json')} && ${command('provide --config provider.toml')}`,
        {
          folder: FOLDER,
          env,
        },
      );
      await written(child, /(ready)/);
      await call(`http://127.0.0.1:${port}`, key, 'acme/small');
      const seconds = (performance.now() - began) / 1000;
      return { seconds, mb: weigh.reduce((sum, path) => sum + megabytes(join(machine, path)), 0) };
    } finally {
      if (child) await stopped(child);
      await stopped(router);
      upstream.close();
    }
  }

  /** The image, unpacked as its layers say, with its own command. */
  function fromImage(_command, options) {
    const [layout, root] = ['layout', 'root'].map((name) => join(place, name));
    const unpack = [
      `mkdir -p ${layout} ${root}`,
      `tar -xf ${join(release, fileOf(/-oci-.*\.tar$/))} -C ${layout}`,
      ...layersOf(release, fileOf(/-oci-.*\.tar$/)).map((digest) => `tar -xzpf ${layout}/blobs/${digest} -C ${root}`),
      `rm -r ${layout}`,
      `mkdir -p ${root}/dev ${root}/proc ${root}/sys ${root}/data`,
    ];
    const { status, stderr } = spawnSync('sh', ['-ec', unpack.join('\n')], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return start('tollgate start', {
      ...options,
      machine: root,
      account: 'root',
      env: { ...options.env, HOME: '/', TOLLGATE_DATA: '/data' },
      folder: '',
    });
  }

  const at = (name) => join(home, FOLDER, name);
  const unpacked = { TOLLGATE_UNPACK: `${home}/unpacked`, PATH: NO_NODE };
  const data = join(home, 'data');
  const withNode = { PATH: `${NODE_24}:/usr/bin:/bin`, TOLLGATE_DATA: data };
  const installLibrary = () =>
    execute('chroot', [machine, 'sh', '-c', `apt-get update -qq && apt-get install -qq ${LIBRARY}`], { log, signal });
  const clone = {
    command: 'cd ../tollgate && npm ci --omit=dev && npm start',
    fresh: [...['node_modules', '.tollgate', '.cache'].map((name) => `tollgate/${name}`), '.npm', 'data'].map((path) =>
      join(home, path),
    ),
    weigh: [join(home, 'tollgate')],
  };
  const ways = [
    {
      name: 'git clone, `npm ci --omit=dev && npm start`',
      time: () => timed(clone),
    },
    {
      name: '`npx --package ./tollgate-….tgz -- tollgate start`, Node 24 is there',
      time: () =>
        timed({
          command: `npx --yes --package ./release/${gateway} -- tollgate start`,
          fresh: [join(home, '.npm'), data],
          weigh: [at(`release/${gateway}`), join(home, '.npm/_npx')],
          env: withNode,
        }),
    },
    {
      name: '`npm install -g ./tollgate-….tgz && tollgate start`, Node 24 is there',
      time: () =>
        timed({
          command: `npm install -g --prefix ./global ./release/${gateway} && ./global/bin/tollgate start`,
          fresh: [join(home, '.npm'), data, at('global')],
          weigh: [at('global')],
          env: withNode,
        }),
    },
    {
      name: 'the executable, without Node in PATH; first start',
      time: () =>
        timed({
          command: `./release/${program} start`,
          fresh: [join(home, 'unpacked'), data],
          weigh: [at(`release/${program}`), join(home, 'unpacked')],
          env: { ...unpacked, TOLLGATE_DATA: data },
        }),
    },
    {
      name: 'the same, later starts',
      time: () =>
        timed({
          command: `./release/${program} start`,
          fresh: [data],
          weigh: [at(`release/${program}`), join(home, 'unpacked')],
          env: { ...unpacked, TOLLGATE_DATA: data },
        }),
    },
    {
      name: 'the image, unpacked and started',
      time: () => timed({ command: '', fresh: [at('root'), at('layout')], weigh: [at('root')], run: fromImage }),
    },
    {
      name: "the provider's proxy, `npm install -g`, a wallet, and dialled in, Node 24 is there",
      time: () =>
        timedProxy({
          command: (args) =>
            args.startsWith('keygen')
              ? `npm install -g --prefix ./global-proxy ./release/${proxy} && ./global-proxy/bin/tollgate-provide ${args}`
              : `./global-proxy/bin/tollgate-provide ${args}`,
          fresh: [join(home, '.npm'), at('global-proxy')],
          weigh: [at('global-proxy')],
          env: withNode,
        }),
    },
    {
      name: 'the same, the executable, without Node in PATH; first start',
      time: () =>
        timedProxy({
          command: (args) => `./release/${proxyProgram} ${args}`,
          fresh: [join(home, 'unpacked-proxy')],
          weigh: [at(`release/${proxyProgram}`), join(home, 'unpacked-proxy')],
          env: { PATH: NO_NODE, TOLLGATE_UNPACK: `${home}/unpacked-proxy` },
        }),
    },
    // The last one, because all others have to do without the library.
    {
      name: `git clone as in the first line, with ${LIBRARY}`,
      prepare: installLibrary,
      time: () => timed(clone),
    },
  ];
  say('| way | s to the first answer: best, all | MB | load |\n|---|---|---|---|');
  for (const { name, prepare, time } of ways) {
    const rounds = [];
    await prepare?.();
    for (let round = 0; round < ROUNDS; round += 1) {
      try {
        rounds.push(await time());
      } catch (error) {
        return `${name}: ${error.message}`;
      }
    }
    const all = rounds.map(({ seconds }) => seconds);
    const text = all.map((seconds) => seconds.toFixed(1)).join(', ');
    say(
      `| ${name} | ${Math.min(...all).toFixed(1)} (${text}) | ${Math.round(rounds.at(-1).mb)} | ${loadavg()[0].toFixed(1)} |`,
    );
  }
  return null;
}

async function call(origin, key, model) {
  const reply = await fetch(`${origin}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'What is a tollgate?' }], max_tokens: 20 }),
  });
  const text = await reply.text();
  if (reply.status !== 200 || !text.includes('"cost":'))
    throw new Error(`the chat was answered with ${reply.status}: ${text}`);
}

/** As Ctrl-C does it. */
async function stopped(child) {
  try {
    process.kill(-child.pid, 'SIGINT');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
  await Promise.race([child.ended, pause(10_000, undefined, { ref: false })]);
  child.kill('SIGKILL');
  await child.ended;
}

/** What a file or folder takes of the disk, without the history of git. */
function megabytes(path) {
  if (!existsSync(path)) throw new Error(`${path} is not there`);
  const { stdout } = spawnSync('du', ['-sk', '--exclude=.git', path], { encoding: 'utf8' });
  return Number(stdout.split('\t')[0]) / 1024;
}

/** The digests of the layers of an image, as paths below `blobs`. */
function layersOf(folder, file) {
  const read = (name) =>
    JSON.parse(spawnSync('tar', ['-xOf', join(folder, file), name], { encoding: 'utf8', maxBuffer: 1 << 24 }).stdout);
  const blob = (digest) => digest.replace(':', '/');
  const [first] = read('index.json').manifests;
  return read(`blobs/${blob(first.digest)}`).layers.map(({ digest }) => blob(digest));
}

/** Node 24 with its npm, which needs no libatomic: for packages that bring none. */
async function installNode24({ checkout, machine, place, log, signal, execute }) {
  const { dependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(checkout, 'bin/node-24/package.json'), 'utf8'),
  );
  const [name, version] = Object.entries({ ...dependencies, ...optionalDependencies }).find(([each]) =>
    each.includes(`${process.platform}-${process.arch}`),
  );
  const work = join(place, 'node-24');
  await execute('npm', ['install', '--prefix', work, '--ignore-scripts', `${name}@${version}`], { log, signal });
  const target = join(machine, NODE_24);
  mkdirSync(target, { recursive: true });
  cpSync(join(work, 'node_modules', name, 'bin/node'), join(target, 'node'));
  for (const program of ['npm', 'npx'])
    symlinkSync(`/usr/local/lib/node_modules/npm/bin/${program}-cli.js`, join(target, program));
  rmSync(work, { recursive: true });
}
