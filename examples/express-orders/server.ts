import { listen } from '../orders/listen.ts';
import { openShop } from '../orders/setup.ts';
import { createApp } from './app.ts';

const { orders, locks } = openShop();
void listen(createApp(orders, locks));
