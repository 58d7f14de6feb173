import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once as event } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lacking, once, run } from '../../../clients/generated/tools.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { CLIENT } from './company.ts';
import type { Visitor } from './visitor.ts';

const VERSION = '26.2.5';
const START_MS = 300_000;
const PASSWORD = 'a-password-of-the-tests';
const REALM = 'acme';

/** Why Keycloak cannot run here; null if it can. */
export const lacksKeycloak = (): string | null => lacking(['java', '-version'], ['mvn', '--version']);

/** Keycloak with one realm. People are named by their user names. */
export interface Keycloak {
  readonly issuer: string;
  addPerson(name: string, groups: readonly string[]): Promise<void>;
  leaveGroup(name: string, group: string): Promise<void>;
  disable(name: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** Ends the session that a person has for the gateway, as an administrator of Keycloak does. It tells the gateway. */
  endSession(name: string): Promise<void>;
  /** Ends the other sessions of a person, and declares all earlier tokens void. Keycloak tells nobody. */
  signOut(name: string): Promise<void>;
  /** Goes through the form of the sign-in. Resolves with the address that Keycloak sends the browser to. */
  signIn(visitor: Visitor, form: string, name: string): Promise<URL>;
  stop(): Promise<void>;
}

/** `gateway` is the origin of the gateway that people sign in to. */
export async function startKeycloak(gateway: string, groups: readonly string[]): Promise<Keycloak> {
  const home = join(download(), `keycloak-${VERSION}`);
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  const tmp = mkdtempSync(join(tmpdir(), 'tollgate-keycloak-'));
  const options = ['--http-host=127.0.0.1', `--http-port=${port}`, '--http-management-port=0', '--db=dev-mem'];
  const child = spawn('sh', [join(home, 'bin/kc.sh'), 'start-dev', ...options], {
    env: {
      ...process.env,
      KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
      KC_BOOTSTRAP_ADMIN_PASSWORD: PASSWORD,
      JAVA_OPTS_APPEND: `-Djava.io.tmpdir=${tmp} -Xmx512m`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    await isListening(child);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }

  const admin = createAdmin(origin);
  await admin('POST', '', realm(gateway, groups));
  const found = async (kind: 'users' | 'groups', name: string): Promise<string> => {
    const query = kind === 'users' ? `username=${name}&exact=true` : `search=${name}&exact=true`;
    const [one] = (await admin('GET', `/${REALM}/${kind}?${query}`)) as readonly { readonly id: string }[];
    if (one === undefined) throw new Error(`Keycloak has no ${name} among its ${kind}`);
    return one.id;
  };
  const user = async (name: string) => `/${REALM}/users/${await found('users', name)}`;
  return {
    issuer: `${origin}/realms/${REALM}`,
    addPerson: async (name, of) => {
      await admin('POST', `/${REALM}/users`, {
        username: name,
        enabled: true,
        email: `${name}@acme.example`,
        emailVerified: true,
        firstName: name,
        lastName: 'of Acme',
        groups: of.map((group) => `/${group}`),
        credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
      });
    },
    leaveGroup: async (name, group) => {
      await admin('DELETE', `${await user(name)}/groups/${await found('groups', group)}`);
    },
    disable: async (name) => {
      await admin('PUT', await user(name), { enabled: false });
    },
    delete: async (name) => {
      await admin('DELETE', await user(name));
    },
    endSession: async (name) => {
      const [client] = (await admin('GET', `/${REALM}/clients?clientId=${CLIENT.id}`)) as readonly { id: string }[];
      const sessions = await admin('GET', `${await user(name)}/offline-sessions/${client!.id}`);
      for (const { id } of sessions as readonly { id: string }[])
        await admin('DELETE', `/${REALM}/sessions/${id}?isOffline=true`);
    },
    signOut: async (name) => {
      await admin('POST', `${await user(name)}/logout`);
    },
    async signIn(visitor, form, name) {
      const page = await (await visitor.send(form, {})).text();
      const action = /<form[^>]*\saction="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
      if (action === undefined) throw new Error(`Keycloak shows no form: ${page.slice(0, 500)}`);
      const body = new URLSearchParams({ username: name, password: PASSWORD });
      const answer = await visitor.send(action, { method: 'POST', body });
      const next = answer.headers.get('location');
      if (next === null) throw new Error(`Keycloak refuses ${name}: ${answer.status} ${await answer.text()}`);
      return new URL(next, action);
    },
    async stop() {
      const gone = event(child, 'exit');
      child.kill('SIGKILL');
      await gone;
      rmSync(tmp, { recursive: true, force: true });
    },
  };
}

/** The distribution in `.cache`. Maven fetches it once, 150 MB. */
const download = (): string =>
  once(`keycloak-${VERSION}`, (folder) => {
    const unpack = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack';
    const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
    run('mvn', ['-q', '-B', unpack, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`], folder);
  });

async function isListening(child: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`Keycloak does not start: ${said.slice(-3_000)}`)), START_MS);
    const hear = (bytes: Buffer) => {
      said += bytes.toString();
      if (!said.includes('Listening on:')) return;
      clearTimeout(late);
      resolve();
    };
    child.stdout!.on('data', hear);
    child.stderr!.on('data', hear);
    child.once('exit', (code) => reject(new Error(`Keycloak ends with ${code}: ${said.slice(-3_000)}`)));
  });
}

/** Requests to Keycloak's own API. `path` is below `/admin/realms`. Rejects on any status but 2xx. */
function createAdmin(origin: string) {
  const token = async (): Promise<string> => {
    const form = { grant_type: 'password', client_id: 'admin-cli', username: 'admin', password: PASSWORD };
    const answer = await fetch(`${origin}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    });
    return ((await answer.json()) as { readonly access_token: string }).access_token;
  };
  return async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${origin}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? null : (JSON.parse(text) as unknown);
  };
}

/** A realm with the gateway as its client, as docs/run/people.md says. */
const realm = (gateway: string, groups: readonly string[]) => ({
  id: randomUUID(),
  realm: REALM,
  enabled: true,
  groups: groups.map((name) => ({ name })),
  clients: [
    {
      clientId: CLIENT.id,
      secret: CLIENT.secret,
      protocol: 'openid-connect',
      publicClient: false,
      standardFlowEnabled: true,
      redirectUris: [`${gateway}/api/v1/auth/people/callback`],
      attributes: {
        'backchannel.logout.url': `${gateway}/api/v1/auth/people/logout`,
        'backchannel.logout.session.required': 'true',
      },
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' },
        },
      ],
    },
  ],
});
