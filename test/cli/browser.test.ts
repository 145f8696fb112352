import type { Browser } from 'playwright-core';
import { installMs, launchBrowser } from '../support/http/browser.ts';
import { redis, startBoard, useCommand, whileHeld } from './command.ts';

jest.setTimeout(60_000);

describe('reenlock board in a browser', () => {
  useCommand();
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  }, installMs);
  afterAll(() => browser?.close());

  it('The page shows the holder of the lock', async () => {
    await whileHeld(async () => {
      const { address } = await startBoard(redis.url);
      const page = await browser.newPage();
      await page.goto(address.href);
      await page.getByText('order:42').first().waitFor();
      expect(page.url()).not.toContain('token');
      await page.close();
    });
  });
});
