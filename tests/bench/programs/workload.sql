-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What programs do with SQLite, in memory: fill, index, join, group, update, delete. :rows says how much.
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, town TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount REAL, note TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows / 10)
INSERT INTO customers SELECT i, 'customer ' || i, 'town ' || (i % 97) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO orders SELECT i, i * 7919 % (:rows / 10) + 1, i % 1000 / 10.0, 'note ' || i FROM n;
COMMIT;
CREATE INDEX orders_by_customer ON orders(customer);
SELECT town, count(*), round(sum(amount), 2) FROM customers JOIN orders ON customer = customers.id
GROUP BY town ORDER BY 3 DESC LIMIT 5;
UPDATE orders SET amount = amount * 1.1 WHERE customer % 3 = 0;
SELECT count(*) FROM orders WHERE note LIKE '%9%';
DELETE FROM orders WHERE id % 5 = 0;
SELECT count(*), round(avg(amount), 3) FROM orders;
