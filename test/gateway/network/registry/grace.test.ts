import { describe, expect, test } from 'vitest';
import { BOTH_ENGINES, openTestDatabase } from '../../test-database.ts';
import { joined, listed, model, startNode, until } from './registry-world.ts';

describe.each(BOTH_ENGINES)('%s: the offers of a provider that went away', (engine) => {
  test('stay for the grace time, unchanged, and are removed after it', async () => {
    // The one's grace time no machine is too slow for, the other's is soon over.
    for (const graceMs of [60_000, 400]) {
      const node = await startNode(await openTestDatabase(engine), { graceMs });
      const connection = await joined(node, 'p');
      await node.registry.register(connection, [model('a')]);
      const version = node.catalog.version();
      const left = performance.now();
      await node.registry.leave(connection);
      if (graceMs === 60_000) {
        expect(listed(node)).toEqual(['p:a']);
        expect(node.catalog.version()).toBe(version);
      } else {
        await until(() => listed(node).length === 0);
        expect(performance.now() - left).toBeGreaterThan(350);
      }
    }
  });

  test('stay for good when it returns in time', async () => {
    const node = await startNode(await openTestDatabase(engine), { graceMs: 3_000 });
    const [first, goes] = [await joined(node, 'p'), await joined(node, 'q')];
    await node.registry.register(first, [model('a')]);
    await node.registry.register(goes, [model('b', { providerName: 'Other' })]);
    let [returns, version, left] = [first, 0, 0];
    do {
      // Anew where the machine stood still in between: that was not in time.
      await until(() => listed(node).includes('p:a'));
      version = node.catalog.version();
      left = performance.now();
      await node.registry.leave(returns);
      returns = await joined(node, 'p');
    } while (performance.now() - left > 2_000);
    await node.registry.leave(goes);
    await until(() => !listed(node).includes('q:b'));
    expect(listed(node)).toEqual(['p:a']);
    expect(node.catalog.version()).toBe(version + 1);
  });

  test('are listed again when it returns late, before it registers anew', async () => {
    const node = await startNode(await openTestDatabase(engine), { graceMs: 0 });
    const connection = await joined(node, 'p');
    await node.registry.register(connection, [model('a')]);
    await node.registry.leave(connection);
    await until(() => listed(node).length === 0);
    await joined(node, 'p');
    await until(() => listed(node).length === 1);
  });
});
