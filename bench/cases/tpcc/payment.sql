\set w random(1, :warehouses)
\set d random(1, 10)
\set c random(1, :customers)
\set name random(0, 999)
\set amount random(100, 500000)
\set way random(1, 100)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :amount / 100.0 WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + :amount / 100.0 WHERE d_w_id = :w AND d_id = :d;
\if :way <= 60
SELECT coalesce((SELECT c_id FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_last = last_name(:name)
                  ORDER BY c_first OFFSET (SELECT count(*) / 2 FROM customer WHERE c_w_id = :w AND c_d_id = :d
                                              AND c_last = last_name(:name)) LIMIT 1), :c) AS c \gset
\endif
UPDATE customer SET c_balance = c_balance - :amount / 100.0, c_ytd_payment = c_ytd_payment + :amount / 100.0,
       c_payment_cnt = c_payment_cnt + 1
 WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
INSERT INTO history VALUES (:c, :d, :w, :d, :w, now(), :amount / 100.0, 'payment');
END;
